"""Checksums of card numbers (Luhn) and bank account numbers (IBAN, ISO 13616), which exclude other digit sequences.

Both searches are linear in the text.
"""

import re
from itertools import accumulate

_CARD_LENGTHS = {
    **dict.fromkeys(range(22, 28), (16,)),
    **dict.fromkeys((30, 36, 38, 39), (14,)),
    **dict.fromkeys((34, 37), (15,)),
    35: (16,),
    **dict.fromkeys(range(40, 50), (13, 16, 19)),
    **dict.fromkeys(range(50, 60), (16,)),
    **dict.fromkeys(range(60, 70), (16, 17, 18, 19)),
}
"""Lengths of card numbers by their first two digits (ISO/IEC 7812)."""
_DIGITS = re.compile(r"[0-9](?:[ -]?+[0-9]){12,}+")
_GROUP = re.compile(r"[0-9]++")
_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18"
    " FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20"
    " LU20 LV21 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19"
    " SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20"
)
_IBAN_LENGTHS = {entry[:2]: int(entry[2:]) for entry in _LENGTHS.split()}
_IBAN_START = re.compile(rf"(?<![A-Z0-9])(?:{'|'.join(_IBAN_LENGTHS)})[0-9]{{2}}")
_MAX_IBAN_LENGTH = 2 * max(_IBAN_LENGTHS.values())


def has_card(text: str) -> bool:
    """True if the text contains a card number: 13 to 19 digits, in groups or not, with a valid check digit."""
    return any(_is_card(run[0]) for run in _DIGITS.finditer(text))


def has_iban(text: str) -> bool:
    """True if the text contains an IBAN, with or without spaces: country, length and check digits are valid."""
    upper = text.upper()
    return any(_is_iban(upper, found.start()) for found in _IBAN_START.finditer(upper))


def _is_card(run: str) -> bool:
    """Test each sequence of whole groups with the length of a card number, by sums from the start of the run."""
    digits = [int(digit) for digit in run if digit.isdigit()]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits]  # the digits of 10 to 18 sum to this
    sums = [
        list(accumulate((doubled if (at + parity) % 2 else digits)[at] for at in range(len(digits))))
        for parity in (0, 1)
    ]
    ends = set(accumulate(len(group) for group in _GROUP.findall(run)))
    for start in sorted({0, *ends} - {len(digits)}):
        for length in _CARD_LENGTHS.get(int("".join(map(str, digits[start : start + 2]))), ()):
            end = start + length
            if end in ends:
                total = sums[(end + 1) % 2]  # the last digit is not doubled
                if (total[end - 1] - (total[start - 1] if start else 0)) % 10 == 0:
                    return True
    return False


def _is_iban(text: str, start: int) -> bool:
    length = _IBAN_LENGTHS[text[start : start + 2]]
    number = text[start : start + _MAX_IBAN_LENGTH].replace(" ", "")[:length]
    if len(number) < length or not number.isalnum() or not number.isascii():
        return False
    return int("".join(str(int(character, 36)) for character in number[4:] + number[:4])) % 97 == 1
