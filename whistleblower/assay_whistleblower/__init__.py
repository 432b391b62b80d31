"""The whistleblower: re-audits the verifiers' attestations."""
