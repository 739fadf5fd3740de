// Sets of characters, as text for bracket expressions and `translate` of PostgreSQL, which has no
// properties of characters. Tests compare them with the properties (test/database/folding.test.ts).

/** Default_Ignorable_Code_Point: characters that are not displayed. */
export const IGNORABLE = ranges(
  '00ad 034f 061c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e 2060-206f 3164 fe00-fe0f feff ffa0 fff0-fff8 1bca0-1bca3 1d173-1d17a e0000-e0fff',
);

/** Nonspacing marks with the property Diacritic or the script Inherited, and enclosing marks. */
export const MARKS = ranges(
  '0300-034e 0350-036f 0483-0489 0591-05bd 05bf 05c1-05c2 05c4-05c5 05c7 064b-0655 0657-0658 0670 06df-06e0 06ea-06ec 0730-074a 07a6-07b0 07eb-07f3 0818-0819 0898-089f 08ca-08d2 08e3-08fe 093c 094d 0951-0954 09bc 09cd 0a3c 0a4d 0abc 0acd 0afd-0aff 0b3c 0b4d 0b55 0bcd 0c3c 0c4d 0cbc 0ccd 0d3b-0d3c 0d4d 0dca 0e3a 0e47-0e4c 0e4e 0eba 0ec8-0ecc 0f18-0f19 0f35 0f37 0f39 0f82-0f84 0f86-0f87 0fc6 1037 1039-103a 108d 135d-135f 1714 17c9-17d3 17dd 1939-193b 1a60 1a75-1a7c 1a7f 1ab0-1add 1ae0-1aeb 1b34 1b6b-1b73 1bab 1be6 1c36-1c37 1cd0-1cd2 1cd4-1ce0 1ce2-1ce8 1ced 1cf4 1cf8-1cf9 1dc0-1dff 20d0-20f0 2cef-2cf1 302a-302d a66f-a672 a67c-a67d a6f0-a6f1 a806 a82c a8c4 a8e0-a8f1 a92b-a92d a9b3 a9e5 aa7c aabf aac1 aaf6 abed fb1e fe20-fe2f 101fd 102e0 10a38-10a3a 10a3f 10ae5-10ae6 10d24-10d27 10d69-10d6d 10efa 10efd-10eff 10f46-10f50 10f82-10f85 11046 11070 110b9-110ba 11133-11134 11173 111ca-111cc 11236 112e9-112ea 1133b-1133c 11366-1136c 11370-11374 113ce 113d0 113d2 113e1-113e2 11442 11446 114c2-114c3 115bf-115c0 1163f 116b7 1172b 11839-1183a 1193e 11943 119e0 11a34 11a47 11a99 11c3f 11d42 11d44-11d45 11d97 11f42 11f5a 13447-13455 1612f 16af0-16af4 16b30-16b36 16f8f-16f92 1cf00-1cf2d 1cf30-1cf46 1d167-1d169 1d17b-1d182 1d185-1d18b 1d1aa-1d1ad 1e130-1e136 1e2ae 1e2ec-1e2ef 1e5ee-1e5ef 1e8d0-1e8d6 1e944-1e946 1e948-1e94a',
);

/** Characters, each with what replaces it: one for all, or one for each. */
export type Replacements = readonly (readonly [from: string, to: string])[];

/** Signs that normalization or unaccent would turn into others. */
export const SIGNS: Replacements = [
  ['´', "'"],
  ['«»„“”‟‹›', '"'],
];

/**
 * Apostrophes and letters that look alike; Dash_Punctuation, the minus sign
 * and the hyphen bullet; digits; and small letters that are left to fold (CaseFolding.txt).
 */
export const LETTERS: Replacements = [
  ['`ʹʻʼʽʾʿˈ՚׳ߴߵ‘’‛′ꞌ', "'"],
  ['֊־᐀᠆‐‑‒–—―⁃−⸗⸚⸺⸻⹀⹝〜〰゠', '-'],
  ['٠١٢٣٤٥٦٧٨٩', '0123456789'],
  ['۰۱۲۳۴۵۶۷۸۹', '0123456789'],
  ['ςᲀᲁᲂᲃᲄᲅᲆᲇᲈ', 'σвдосттъѣꙋ'],
];

/**
 * Small Greek and Cyrillic letters to the Latin ones that they or their
 * capitals look like (UTS 39, confusables.txt).
 */
export const LOOKALIKES: Replacements = [
  ['αβεζηικμνορτυχς', 'abezhikmnoptyxσ'],
  ['авеѕіјкмнорстухһԁӏԛԝ', 'abesijkmhopctyxhdlqw'],
];

/** Returns the second and third argument of `translate`. */
export function argumentsOf(pairs: Replacements): string {
  const [from, to] = [
    pairs.map(([text]) => text),
    pairs.map(([text, other]) => (other.length === 1 ? other.repeat(text.length) : other)),
  ].map((texts) => texts.join('').replaceAll("'", "''"));
  return `'${from}', '${to}'`;
}

function ranges(codes: string): string {
  return codes.replace(/[\da-f]+/g, (code) => `\\U${code.padStart(8, '0')}`).replaceAll(' ', '');
}
