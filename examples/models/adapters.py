"""peft: adapters on a frozen GPT-2, and on a classifier of pictures."""

from collections.abc import Callable
from typing import Any

from assay.training.recipes.recipe import Recipe
from examples.models.listing import add, entry, images, labels, recipe, tokens
from examples.models.text import GPT2, GROUPED, PADS, next_token
from examples.models.vision import PATCHES, seen


def adapted(kind: str, base: str = "GPT2", **options: Any) -> Callable[[], Recipe]:
    """A factory of a language model whose weights stand still, with an adapter `KINDConfig(**options)`."""

    def factory() -> Recipe:
        import peft
        import transformers

        if base == "GPT2":
            model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
        else:
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**(GROUPED | PADS)))
        config = getattr(peft, f"{kind}Config")(task_type="CAUSAL_LM", **options)
        return recipe(peft.get_peft_model(model, config).train(), next_token, tokens())

    return factory


LLAMA = {"base": "Llama", "target_modules": ["q_proj", "v_proj"]}

DROPS = "control flow that depends on values (adapters that are dropped whole)"
REFUSED = {"fourierft": "Fourier transform", "loha": DROPS, "lokr": DROPS}

for name, kind, options in (
    ("lora", "Lora", {"r": 4, "lora_dropout": 0.1}),
    ("lora-all-linear", "Lora", {"r": 4, "base": "Llama", "target_modules": "all-linear"}),
    ("rslora", "Lora", {"r": 4, "use_rslora": True}),
    ("dora", "Lora", {"r": 4, "use_dora": True} | LLAMA),
    ("ia3", "IA3", {"target_modules": ["c_attn", "mlp.c_proj"], "feedforward_modules": ["mlp.c_proj"]}),
    ("adalora", "AdaLora", {"init_r": 4, "target_r": 2, "total_step": 100} | LLAMA),
    ("loha", "LoHa", {"r": 4} | LLAMA),
    ("lokr", "LoKr", {"r": 4} | LLAMA),
    ("vera", "Vera", {"r": 8} | LLAMA),
    ("oft", "OFT", {"oft_block_size": 4} | LLAMA),
    ("prompt-tuning", "PromptTuning", {"num_virtual_tokens": 4}),
    ("p-tuning", "PromptEncoder", {"num_virtual_tokens": 4, "encoder_hidden_size": 16}),
    ("prefix-tuning", "PrefixTuning", {"num_virtual_tokens": 4}),
    ("layernorm-tuning", "LNTuning", {"base": "Llama", "target_modules": ["input_layernorm"]}),
    ("fourierft", "FourierFT", {"n_frequency": 16} | LLAMA),
):
    add(f"peft/{name}", adapted(kind, **options), REFUSED.get(name, ""))


@entry("peft/lora-vit")
def lora_vit() -> Recipe:
    """LoRA on a vision transformer, its classifier trained whole."""
    import peft
    import transformers

    model = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=4, **PATCHES))
    names = [n for n, m in model.named_modules() if n.endswith(("query", "value", "q_proj", "v_proj"))]
    config = peft.LoraConfig(r=4, target_modules=names, modules_to_save=["classifier"])
    return recipe(peft.get_peft_model(model, config).train(), seen, images(), labels())
