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
    const known = this.pages.get(text) ?? this.others.get(text);
    if (known !== undefined) return known;
    const name = `s${++this.last}`;
    this.texts.set(name, text);
    this.namesFor(text).set(text, name);
    return name;
  }

  /** Gives the name up: the statement gets another. */
  giveUp(name: string): void {
    const text = this.texts.get(name);
    if (text !== undefined) this.namesFor(text).delete(text);
  }

  /** Returns whether the name has been given up. */
  isGivenUp(name: string): boolean {
    return !this.texts.has(name);
  }

  private namesFor(text: string): LRUCache<string, string> {
    return PAGE.test(text) ? this.pages : this.others;
  }

  private namesByText(): LRUCache<string, string> {
    return new LRUCache({ max: MAX_NAMES, dispose: (name) => void this.texts.delete(name) });
  }
}
