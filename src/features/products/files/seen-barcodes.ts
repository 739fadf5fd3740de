const FIRST_SLOTS = 1 << 12;
/** How full the table may be; fuller, looking up takes long. */
const FULL = 0.8;
const DIGITS_OF_KEY = 12;

/**
 * Which barcodes a file has had so far, and on which line. A slot takes twelve bytes, so that a million barcodes take 24 MB: a Map would take five times
 * as much, and ends at 16 million.
 */
export class SeenBarcodes {
  // Barcodes and lines side by side; 0 stands for a free slot.
  private keys = new Float64Array(FIRST_SLOTS);
  private lines = new Uint32Array(FIRST_SLOTS);
  private count = 0;

  /** Notes the line of a valid barcode that is new; of one that is not, answers the line that it stood on first. */
  note(barcode: string, line: number): number | undefined {
    // The last digit follows from the others. Of any two different keys, none is 0.
    const key = Number(barcode.slice(0, DIGITS_OF_KEY)) + 1;
    const slot = this.slotOf(key);
    if (this.keys[slot] === key) return this.lines[slot];
    this.keys[slot] = key;
    this.lines[slot] = line;
    if (++this.count > this.keys.length * FULL) this.grow();
    return undefined;
  }

  private slotOf(key: number): number {
    const mask = this.keys.length - 1;
    let slot = mixed(key) & mask;
    while (this.keys[slot] !== 0 && this.keys[slot] !== key) slot = (slot + 1) & mask;
    return slot;
  }

  private grow(): void {
    const { keys, lines } = this;
    this.keys = new Float64Array(keys.length * 2);
    this.lines = new Uint32Array(keys.length * 2);
    for (const [place, key] of keys.entries()) {
      if (key === 0) continue;
      const slot = this.slotOf(key);
      this.keys[slot] = key;
      this.lines[slot] = lines[place] ?? 0;
    }
  }
}

// Barcodes of one company run in sequence, and have to be spread. Constants of MurmurHash3's finalizer.
function mixed(key: number): number {
  let hash = Math.imul((key % 2 ** 32) ^ Math.floor(key / 2 ** 32), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
