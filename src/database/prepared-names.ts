import { LRUCache } from 'lru-cache';

/**
 * How many statements have names at most, pages and others: each costs memory on every connection. Pages have their limit in their text,
 * and columns in the order that was asked for: anyone can ask for very many.
 */
const MAX_NAMES = 250;
const PAGE = /\blimit \d+$/;

/** The names of prepared statements. That of the one that was unused for longest is given up for another. */
export class PreparedNames {
  private readonly texts = new Map<string, string>();
  private readonly pages = this.namesByText();
  private readonly others = this.namesByText();
  private last = 0;

  /** Returns the name of this statement, which no other has ever had. */
  of(text: string): string {
    const names = PAGE.test(text) ? this.pages : this.others;
    const known = names.get(text);
    if (known !== undefined) return known;
    const name = `s${++this.last}`;
    this.texts.set(name, text);
    names.set(text, name);
    return name;
  }

  /** Gives the name up: the statement gets another. */
  giveUp(name: string): void {
    const text = this.texts.get(name);
    if (text !== undefined) (PAGE.test(text) ? this.pages : this.others).delete(text);
  }

  /** Returns whether the name has been given up. */
  isGivenUp(name: string): boolean {
    return !this.texts.has(name);
  }

  private namesByText(): LRUCache<string, string> {
    return new LRUCache({ max: MAX_NAMES, dispose: (name) => void this.texts.delete(name) });
  }
}
