"""A second embedding model for tests: a BERT of one small layer with seeded random weights, so that nothing is downloaded."""

import shutil
from pathlib import Path

from primer_resources.embedder.model import resolve_model
from primer_resources.settings import BUNDLED_MODEL

DIMS = 32


def make_tiny_model(folder: Path, seed: int = 1, positions: int = 512) -> Path:
    """A sentence-transformers folder that counts tokens as the bundled model does; another `seed` is another revision."""
    import torch
    from transformers import BertConfig, BertModel

    bundled = resolve_model(BUNDLED_MODEL).folder
    unlike = ("*.safetensors", "*.bin", "config.json", "README.md", "*.onnx", "*.xml")
    shutil.copytree(bundled, folder, ignore=shutil.ignore_patterns(*unlike))
    config = BertConfig(
        hidden_size=DIMS, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, max_position_embeddings=positions
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertModel(config).save_pretrained(folder)
    pooling = folder / "1_Pooling"
    pooling.mkdir(exist_ok=True)
    (pooling / "config.json").write_text(f'{{"word_embedding_dimension": {DIMS}, "pooling_mode_mean_tokens": true}}')
    (folder / "sentence_bert_config.json").write_text(f'{{"max_seq_length": {min(positions, 256)}, "do_lower_case": false}}')
    return folder
