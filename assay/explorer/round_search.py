"""Finds what somebody pasted in a run of the second round."""

from __future__ import annotations

from functools import partial

from assay.explorer.audit_documents import accused_text
from assay.explorer.documents import hexed
from assay.explorer.round_documents import generations
from assay.explorer.round_reader import RoundReader
from assay.explorer.search import Directory, Hit, look_up


def search(reader: RoundReader, query: str) -> list[Hit]:
    """See look_up."""
    return look_up(reader, query, partial(_numbered, reader), partial(_directory, reader))


def _numbered(reader: RoundReader, noun: str, number: int) -> list[Hit]:
    books = reader.state.books
    there = {
        "game": number in reader.state.games,
        "round": number < len(books.commitments.rounds),
        "generation": number in generations(reader),
        "tenure": number in books.tenures.tenures,
        "ticket": number in reader.money.ticket_owners,
        "epoch": number < len(reader.view.epochs),
    }
    wanted = "game" if noun == "dispute" else noun
    return [
        Hit(f"/{name}s/{number}", f"{name} {number}")
        for name, is_there in there.items()
        if is_there and wanted in ("", name)
    ]


def _directory(reader: RoundReader) -> dict[str, list[Hit]]:
    """Everything that has a name in hex."""
    directory, run, state = Directory(), reader.run, reader.state
    add, charter = directory.add, run.charter
    for who in reader.money.people:
        add(who, f"/actors/{hexed(who)}", reader.names.get(who, "an account"))
    for title, contract in run.all_contracts().items():
        add(contract.address, "/run", f"the run's {title} contract")
    add(run.address, "/run", "the run's charter")
    add(run.run_id, "/run", "the run's identity")
    for title, program in charter.programs.items():
        add(program.root, "/run", f"the {title} program")
    add(charter.training.data, "/run", "the data")
    _add_work(reader, directory)
    for name, record in state.attestations.items():
        where = f"ticket {record.ticket} about seat {record.seat} in round {record.round}"
        add(name, f"/findings/{hexed(name)}", f"a finding of {where}")
        add(record.tx_hash, f"/epochs/{record.epoch}", f"an opening of epoch {record.epoch}")
        for accumulator in record.finding.accumulators:
            add(accumulator, f"/findings/{hexed(name)}", f"an accumulator of {where}")
    for name, accusation in state.accusations.items():
        by = state.attestations[accusation.by]
        what = accused_text(accusation.is_work, by.round, int(by.seat))
        add(name, f"/accusations/{hexed(name)}", f"an accusation of {what}")
    for number, epoch in enumerate(reader.view.epochs):
        if epoch.seed is not None:
            add(epoch.seed, f"/epochs/{number}", f"the seed of epoch {number}")
    for game_id, game in sorted(state.games.items()):
        add(game.claim_id, f"/games/{game_id}", f"the claim of game {game_id}")
        for move in game.moves:
            add(move.tx_hash, f"/games/{game_id}", f"a transaction of game {game_id}")
    directory.add_events(reader.events)
    return directory.found


def _add_work(reader: RoundReader, directory: Directory) -> None:
    add, state = directory.add, reader.state
    training = reader.run.charter.training
    add(reader.run.facts.genesis, "/generations/0", "the genesis")
    add(training.parameters, "/generations/0", "the parameters at genesis")
    for (round_, seat), work in sorted(state.works.items()):
        url, where = f"/commitments/{round_}/{seat}", f"seat {seat} in round {round_}"
        add(work.digest, url, f"the commitment of {where}")
        add(work.tx_hash, url, f"the commitment of {where}")
        add(work.work.update, url, f"the update of {where}")
        add(work.work.marks, url, f"the marks of progress of {where}")
        for end in work.work.ends:
            add(end, url, f"a list of the last state of {where}")
    for generation, root in sorted({(o.generation, o.root) for o in state.openings.values()}):
        url = f"/generations/{generation}"
        add(root, url, f"a root of generation {generation}")
        if (lists := reader.view.lists(generation, root)) is not None:
            add(lists.parameters, url, f"parameters of generation {generation}")
            add(lists.momentum, url, f"the momentum of generation {generation}")
