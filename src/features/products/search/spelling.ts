/** Minimum and maximum number of letters of a word that can be corrected (migrations: search). */
const MIN_LETTERS = 4;
const MAX_LETTERS = 24;

/** Folded letters that can be mistyped for each other, by script. */
const ALPHABETS = [
  'abcdefghijklmnopqrstuvwxyz',
  'абвгдежзиклмнопрстуфхцчшщъыьэюяієґ',
  'αβγδεζηθικλμνξοπρστυφχψω',
];

/** Returns whether a folded word can be corrected: length in range, no digits, one script. */
export function isCorrectable(word: string): boolean {
  const { length } = Array.from(word);
  return (
    length >= MIN_LETTERS &&
    length <= MAX_LETTERS &&
    !/[0-9]/.test(word) &&
    alphabetsOf(word).length <= 1
  );
}

/** Returns the words with a letter removed, added or replaced, or two neighbours swapped. */
export function oneEditAway(word: string): string[] {
  const letters = Array.from(word);
  // For another script, the letters of the word.
  const alphabet = new Set(alphabetsOf(word)[0] ?? letters);
  const candidates = new Set<string>();
  for (let index = 0; index < letters.length; index++) {
    const head = letters.slice(0, index).join('');
    const tail = letters.slice(index + 1).join('');
    const [current = '', next = ''] = letters.slice(index, index + 2);
    candidates.add(head + tail);
    if (next !== '') candidates.add(head + next + current + letters.slice(index + 2).join(''));
    for (const letter of alphabet)
      candidates.add(head + letter + tail).add(head + letter + current + tail);
  }
  candidates.delete(word);
  return [...candidates].filter((candidate) => Array.from(candidate).length >= MIN_LETTERS);
}

function alphabetsOf(word: string): string[] {
  return ALPHABETS.filter((alphabet) =>
    Array.from(word).some((letter) => alphabet.includes(letter)),
  );
}
