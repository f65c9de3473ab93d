"""Encodes a prompt to the rows that the transformer reads."""

import hashlib
import html
import threading

import torch
from ftfy import fix_text
from torch import Tensor
from transformers import PreTrainedTokenizerBase, UMT5EncoderModel


def cleaned(prompt: str) -> str:
    """Return a prompt as the public pipelines read it.

    Broken encodings and curly quotes are mended, HTML's escapes are undone twice, and white space
    is one space: the model knows prompts in this form.
    """
    mended: str = html.unescape(html.unescape(fix_text(prompt)))
    return " ".join(mended.split())


class Umt5TextEncoder:
    """The umT5 encoder of the public models; padding is cut off again."""

    def __init__(
        self, encoder: UMT5EncoderModel, tokenizer: PreTrainedTokenizerBase, length: int
    ) -> None:
        """Use loaded parts; `length` is the most tokens that are read."""
        self.encoder, self._tokenizer, self._length = encoder, tokenizer, length
        self._reading = threading.Lock()  # a fast tokenizer is not thread-safe

    @torch.no_grad()
    def encode(self, prompt: str) -> Tensor:
        """Return [rows, text_dim] of a cleaned prompt, cut at `length` tokens. Thread-safe.

        There are no rows of a prompt without tokens: the public tokenizer ends each with one, and
        not every tokenizer does.
        """
        with self._reading:
            read = self._tokenizer(
                [cleaned(prompt)], max_length=self._length, truncation=True, return_tensors="pt"
            )
        read = read.to(self.encoder.device)
        if not read.input_ids.numel():
            width = self.encoder.config.d_model
            return torch.zeros(0, width, device=self.encoder.device, dtype=self.encoder.dtype)
        rows: Tensor = self.encoder(read.input_ids, read.attention_mask).last_hidden_state[0]
        return rows


class HashTextEncoder:
    """Rows of noise that depend on the words alone: for weights that know no language."""

    def __init__(self, length: int, width: int, device: torch.device, dtype: torch.dtype) -> None:
        """Make rows of `width` numbers, at most `length` of them."""
        self._length, self._width = length, width
        self._device, self._dtype = device, dtype

    def encode(self, prompt: str) -> Tensor:
        """Return a row for each word, at least one."""
        words = prompt.split()[: self._length] or [""]
        rows = torch.stack([self._row(word) for word in words])
        return rows.to(self._device, self._dtype)

    def _row(self, word: str) -> Tensor:
        digest = hashlib.blake2b(word.lower().encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
        return torch.randn(self._width, generator=generator)
