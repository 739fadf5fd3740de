/** How many letters a word has at least and at most for one of them to be taken for a mistake (migrations: search). */
const MIN_LETTERS = 4;
const MAX_LETTERS = 24;

/** Letters that are typed for each other: those of one script. */
const ALPHABETS = ['abcdefghijklmnopqrstuvwxyz', 'абвгдежзийклмнопрстуфхцчшщъыьэюяієґў', 'αβγδεζηθικλμνξοπρστυφχψως'];

/** Whether a folded word is one that a letter may be wrong in: neither too short nor too long, no number, and of one script. */
export function isCorrectable(word: string): boolean {
  const { length } = Array.from(word);
  return length >= MIN_LETTERS && length <= MAX_LETTERS && !/[0-9]/.test(word) && alphabetsOf(word).length <= 1;
}

/** All that the word may have been meant for: with one letter left out, put in or put in place of another, or two neighbours swapped. */
export function meantBy(word: string): string[] {
  const letters = Array.from(word);
  // Of a script that is none of these, the letters that the word has.
  const alphabet = new Set(alphabetsOf(word)[0] ?? letters);
  const meant = new Set<string>();
  for (let at = 0; at < letters.length; at++) {
    const head = letters.slice(0, at).join('');
    const tail = letters.slice(at + 1).join('');
    const [here = '', next = ''] = letters.slice(at, at + 2);
    meant.add(head + tail);
    if (next !== '') meant.add(head + next + here + letters.slice(at + 2).join(''));
    for (const letter of alphabet) meant.add(head + letter + tail).add(head + letter + here + tail);
  }
  meant.delete(word);
  return [...meant].filter((other) => Array.from(other).length >= MIN_LETTERS);
}

function alphabetsOf(word: string): string[] {
  return ALPHABETS.filter((alphabet) => Array.from(word).some((letter) => alphabet.includes(letter)));
}
