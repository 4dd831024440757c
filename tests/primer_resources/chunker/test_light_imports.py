"""Dagster loads definitions often; what a load imports must stay light."""

import subprocess
import sys

HEAVY = ("torch", "transformers", "docling_core", "docling", "sentence_transformers", "pandas")


def test_specs_are_had_without_loading_a_model_or_docling() -> None:
    code = (
        "import sys\n"
        "from primer_resources.embedder.model import check_model\n"
        "from primer_resources.recipes import present_recipe, remake\n"
        "from primer_resources.settings import load_settings\n"
        "settings = load_settings()\n"
        "assert remake('v1', present_recipe(settings), settings).recipe == present_recipe(settings)\n"
        "check_model(settings)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
