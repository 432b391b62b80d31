"""diffusers: denoisers trained on noise that they are told of, and autoencoders."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe
from examples.models.listing import EXAMPLES, entry, images, recipe

BLOCKS = {"block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}


def denoised(module: nn.Module, clean: Tensor) -> Tensor:
    """The error of the noise that the model finds in a picture, as DDPM trains."""
    from diffusers import DDPMScheduler

    scheduler = DDPMScheduler(num_train_timesteps=100)
    noise, times = torch.randn_like(clean), torch.randint(0, 100, (clean.shape[0],))
    return F.mse_loss(module(scheduler.add_noise(clean, noise, times), times).sample, noise)


@entry("diffusers/unet2d-ddpm")
def unet2d() -> Recipe:
    """An unconditional denoiser with attention."""
    from diffusers import UNet2DModel

    down, up = ("DownBlock2D", "AttnDownBlock2D"), ("AttnUpBlock2D", "UpBlock2D")
    model = UNet2DModel(sample_size=16, down_block_types=down, up_block_types=up, attention_head_dim=8, **BLOCKS)
    return recipe(model.train(), denoised, images(16))


@entry("diffusers/unet1d")
def unet1d() -> Recipe:
    """A denoiser of sequences."""
    from diffusers import UNet1DModel

    options = {"in_channels": 2, "out_channels": 2, "extra_in_channels": 64, "block_out_channels": (32, 32, 64)}
    model = UNet1DModel(sample_size=64, **options)
    return recipe(model.train(), denoised, torch.randn(EXAMPLES, 2, 64))


def guided(module: nn.Module, clean: Tensor, words: Tensor) -> Tensor:
    """The error of the noise, words given."""
    noise, times = torch.randn_like(clean), torch.randint(0, 100, (clean.shape[0],))
    kept = (times.to(torch.float32) / 100.0).reshape(-1, 1, 1, 1)
    noisy = clean * (1.0 - kept) + noise * kept
    return F.mse_loss(module(noisy, timestep=times, encoder_hidden_states=words).sample, noise)


@entry("diffusers/unet2d-condition")
def unet2d_condition() -> Recipe:
    """Stable Diffusion's denoiser: cross-attention to words."""
    from diffusers import UNet2DConditionModel

    down, up = ("CrossAttnDownBlock2D", "DownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")
    options = {"down_block_types": down, "up_block_types": up, "cross_attention_dim": 16, "attention_head_dim": 4}
    model = UNet2DConditionModel(sample_size=16, in_channels=3, out_channels=3, **options, **BLOCKS)
    return recipe(model.train(), guided, images(16), torch.randn(EXAMPLES, 6, 16))


def rebuilt(module: nn.Module, x: Tensor) -> Tensor:
    """Reconstruction and divergence of a variational autoencoder."""
    posterior = module.encode(x).latent_dist
    return F.mse_loss(module.decode(posterior.sample()).sample, x) + 1e-3 * posterior.kl().mean()


@entry("diffusers/autoencoder-kl")
def autoencoder_kl() -> Recipe:
    """Stable Diffusion's autoencoder."""
    from diffusers import AutoencoderKL

    kinds = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    return recipe(AutoencoderKL(sample_size=16, **kinds, **BLOCKS).train(), rebuilt, images(16))


def quantized(module: nn.Module, x: Tensor) -> Tensor:
    """Reconstruction of a vector-quantized autoencoder."""
    out = module(x)
    return F.mse_loss(out.sample, x) + out.commit_loss.mean()


@entry("diffusers/vq-model")
def vq_model() -> Recipe:
    """A vector-quantized autoencoder: the nearest of a book of codes."""
    from diffusers import VQModel

    kinds = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    return recipe(VQModel(sample_size=16, num_vq_embeddings=16, **kinds, **BLOCKS).train(), quantized, images(16))


def tiny_loss(module: nn.Module, x: Tensor) -> Tensor:
    """Reconstruction alone."""
    return F.mse_loss(module(x).sample, x)


@entry("diffusers/autoencoder-tiny")
def autoencoder_tiny() -> Recipe:
    """A small autoencoder of convolutions."""
    from diffusers import AutoencoderTiny

    sizes = {"encoder_block_out_channels": (8, 8), "decoder_block_out_channels": (8, 8)}
    model = AutoencoderTiny(**sizes, num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1))
    return recipe(model.train(), tiny_loss, images(16))


def classed(module: nn.Module, clean: Tensor, kinds: Tensor) -> Tensor:
    """The error of the noise, a class given."""
    noise, times = torch.randn_like(clean), torch.randint(0, 100, (clean.shape[0],))
    return F.mse_loss(module(clean + noise, timestep=times, class_labels=kinds).sample, noise)


@entry("diffusers/dit")
def dit() -> Recipe:
    """A diffusion transformer with classes."""
    from diffusers import DiTTransformer2DModel

    size = {"num_attention_heads": 4, "attention_head_dim": 8, "num_layers": 2, "sample_size": 8, "patch_size": 2}
    model = DiTTransformer2DModel(in_channels=4, out_channels=4, num_embeds_ada_norm=10, norm_num_groups=4, **size)
    return recipe(model.train(), classed, images(8, 4), torch.randint(0, 10, (EXAMPLES,)))


def flowed(module: nn.Module, clean: Tensor, words: Tensor, whole: Tensor) -> Tensor:
    """Rectified flow: the direction from picture to noise."""
    noise, times = torch.randn_like(clean), torch.rand(clean.shape[0])
    kept = times.reshape(-1, *[1] * (clean.ndim - 1))
    noisy = clean * (1.0 - kept) + noise * kept
    out = module(hidden_states=noisy, timestep=times * 1000.0, encoder_hidden_states=words, pooled_projections=whole)
    return F.mse_loss(out.sample, noise - clean)


@entry("diffusers/sd3")
def sd3() -> Recipe:
    """Stable Diffusion 3's transformer: words and picture attend to each other."""
    from diffusers import SD3Transformer2DModel

    size = {"sample_size": 8, "patch_size": 2, "num_layers": 2, "attention_head_dim": 8, "num_attention_heads": 4}
    more = {
        "joint_attention_dim": 16,
        "caption_projection_dim": 32,
        "pooled_projection_dim": 16,
        "pos_embed_max_size": 8,
    }
    model = SD3Transformer2DModel(in_channels=4, out_channels=4, **size, **more)
    return recipe(model.train(), flowed, images(8, 4), torch.randn(EXAMPLES, 6, 16), torch.randn(EXAMPLES, 16))


def flux_loss(module: nn.Module, clean: Tensor, words: Tensor, whole: Tensor) -> Tensor:
    """Rectified flow on packed patches."""
    noise, times = torch.randn_like(clean), torch.rand(clean.shape[0])
    noisy = clean * (1.0 - times[:, None, None]) + noise * times[:, None, None]
    out = module(
        hidden_states=noisy,
        timestep=times,
        encoder_hidden_states=words,
        pooled_projections=whole,
        txt_ids=torch.zeros(words.shape[1], 3),
        img_ids=torch.zeros(clean.shape[1], 3),
    )
    return F.mse_loss(out.sample, noise - clean)


@entry("diffusers/flux")
def flux() -> Recipe:
    """Flux's transformer: double and single streams, rotary positions."""
    from diffusers import FluxTransformer2DModel

    size = {"num_layers": 1, "num_single_layers": 1, "attention_head_dim": 8, "num_attention_heads": 4}
    more = {"joint_attention_dim": 16, "pooled_projection_dim": 16, "axes_dims_rope": (4, 2, 2)}
    model = FluxTransformer2DModel(in_channels=16, **size, **more)
    data = torch.randn(EXAMPLES, 16, 16), torch.randn(EXAMPLES, 6, 16), torch.randn(EXAMPLES, 16)
    return recipe(model.train(), flux_loss, *data)


@entry("diffusers/pixart")
def pixart() -> Recipe:
    """PixArt's transformer: a class-free diffusion transformer with words."""
    from diffusers import PixArtTransformer2DModel

    size = {"sample_size": 8, "patch_size": 2, "num_layers": 2, "attention_head_dim": 8, "num_attention_heads": 4}
    more = {"cross_attention_dim": 32, "caption_channels": 16, "norm_num_groups": 4, "use_additional_conditions": False}
    model = PixArtTransformer2DModel(in_channels=4, out_channels=4, **size, **more)
    return recipe(model.train(), guided, images(8, 4), torch.randn(EXAMPLES, 6, 16))


def controlled(module: nn.Module, clean: Tensor, words: Tensor, guide: Tensor) -> Tensor:
    """The size of what a control network adds, against a target of one."""
    times = torch.randint(0, 100, (clean.shape[0],))
    out = module(clean, timestep=times, encoder_hidden_states=words, controlnet_cond=guide)
    return ((out.mid_block_res_sample - 1.0) ** 2).mean()


@entry("diffusers/controlnet")
def controlnet() -> Recipe:
    """ControlNet: a picture guides a denoiser."""
    from diffusers import ControlNetModel

    down = ("CrossAttnDownBlock2D", "DownBlock2D")
    more = {"conditioning_embedding_out_channels": (8, 16), "cross_attention_dim": 16, "attention_head_dim": 4}
    model = ControlNetModel(in_channels=3, down_block_types=down, **more, **BLOCKS)
    data = images(16), torch.randn(EXAMPLES, 6, 16), images(32)
    return recipe(model.train(), controlled, *data)
