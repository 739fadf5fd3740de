import { LRUCache } from 'lru-cache';

/**
 * Maximum number of names of pages, and of other statements. Each name costs memory on every
 * connection. The text of a page contains its limit, and its columns in the requested order, so
 * clients can create very many.
 */
const MAX_NAMES = 250;
const PAGE = /\blimit \d+$/;

/** Names of prepared statements. A new statement replaces the least recently used name. */
export class PreparedNames {
  private readonly texts = new Map<string, string>();
  private readonly pages = this.namesByText();
  private readonly others = this.namesByText();
  private last = 0;

  /** Returns the name of this statement. Names are never reused. */
  of(text: string): string {
    const known = this.pages.get(text) ?? this.others.get(text);
    if (known !== undefined) return known;
    const name = `s${++this.last}`;
    this.texts.set(name, text);
    this.namesFor(text).set(text, name);
    return name;
  }

  /** Releases the name. The statement gets another. */
  release(name: string): void {
    const text = this.texts.get(name);
    if (text !== undefined) this.namesFor(text).delete(text);
  }

  /** Returns whether the name was released. */
  isReleased(name: string): boolean {
    return !this.texts.has(name);
  }

  private namesFor(text: string): LRUCache<string, string> {
    return PAGE.test(text) ? this.pages : this.others;
  }

  private namesByText(): LRUCache<string, string> {
    return new LRUCache({ max: MAX_NAMES, dispose: (name) => void this.texts.delete(name) });
  }
}
