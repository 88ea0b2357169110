"""The tiny policy's tokenizer and chat format.

A conversation reads ``<tools>names<user>task<assistant><call>tool{"argument": "value"}<end><tool>result<assistant>done<end>``:
one call a message, the tools by name alone, system messages left out, so that an episode is about two hundred tokens.
Words, ids and runs of punctuation that the bundled pool uses are whole tokens; everything else falls to bytes.
"""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from transformers import PreTrainedTokenizerFast

PAD, END, TOOLS, USER, ASSISTANT, CALL, TOOL = "<pad>", "<end>", "<tools>", "<user>", "<assistant>", "<call>", "<tool>"
SPECIAL = (PAD, END, TOOLS, USER, ASSISTANT, CALL, TOOL)
DONE = "done"
PIECES = "|".join(
    (
        r"\{'success': True, 'data': |\{'success': False, 'error': '",
        r",?(?: (?:a|all|at|else|every|for|from|how|if|in|is|it|many|now|of|on|the|to|with))+ ",
        r"[a-z][0-9](?![A-Za-z0-9_])",  # an id
        r"_?[A-Za-z]+|[0-9]|[^A-Za-z0-9_]+|_",
    )
)
CHAT_TEMPLATE = """\
{%- if tools %}{{ '<tools>' }}\
{%- for tool in tools %}{{ tool.function.name }}{{ '' if loop.last else ' ' }}{% endfor %}{% endif %}\
{%- for message in messages %}\
{%- if message.role == 'user' %}{{ '<user>' + message.content }}\
{%- elif message.role == 'tool' %}{{ '<tool>' + message.content }}\
{%- elif message.role == 'assistant' %}{{ '<assistant>' }}{% generation %}{{ message.content or '' }}\
{%- for call in message.tool_calls or [] %}{{ '<call>' + call.function.name + (call.function.arguments | tojson) }}{% endfor %}\
{{- '<end>' }}{% endgeneration %}{% endif %}\
{%- endfor %}\
{%- if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"""
RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": ASSISTANT,
    "fields": {
        "tool_calls": {
            "open_pattern": r"<call>(?P<name>\w+)",
            "close_pattern": r"(?=<call>)|<end>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
        },
        "content": {"close_pattern": r"(?=<call>)|<end>", "content": "text"},
    },
}


def build_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer whose vocabulary is the bytes and the pieces of ``texts``, in sorted order."""
    split, to_bytes = Split(Regex(PIECES), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)
    pieces = {piece for text in texts for piece, _ in split.pre_tokenize_str(text)}
    tokens = {to_bytes.pre_tokenize_str(piece)[0][0] for piece in pieces}
    vocabulary = [*SPECIAL, *sorted(ByteLevel.alphabet()), *sorted(tokens - set(ByteLevel.alphabet()))]
    tokenizer = Tokenizer(BPE({token: row for row, token in enumerate(vocabulary)}, [], ignore_merges=True))
    tokenizer.pre_tokenizer = Sequence([split, to_bytes])
    tokenizer.decoder = ByteLevelDecoder()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[TOOLS, USER, ASSISTANT, CALL, TOOL],
        padding_side="left",
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
        response_template=RESPONSE_TEMPLATE,
        model_max_length=1024,
    )
