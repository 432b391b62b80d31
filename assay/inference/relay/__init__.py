"""A local server of OpenAI's interface that pays a gateway by vouchers and looks at what it answers."""
