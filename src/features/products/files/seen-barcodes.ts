const INITIAL_SLOTS = 1 << 12;
/** Maximum load factor of the table; above it, lookups are slow. */
const MAX_LOAD = 0.8;
const KEY_DIGITS = 12;

/**
 * The barcodes of a file so far, with their lines. A slot takes 12 bytes, so a million barcodes
 * take 24 MB; a Map would take five times as much and is limited to 16 million entries.
 */
export class BarcodeLines {
  // Barcodes and lines by slot; 0 is a free slot.
  private keys = new Float64Array(INITIAL_SLOTS);
  private lines = new Uint32Array(INITIAL_SLOTS);
  private count = 0;

  /** Stores the line of a new valid barcode; for a known one, returns its first line. */
  add(barcode: string, line: number): number | undefined {
    // The check digit follows from the others. Barcodes have distinct keys, none of which is 0.
    const key = Number(barcode.slice(0, KEY_DIGITS)) + 1;
    const slot = this.slotOf(key);
    if (this.keys[slot] === key) return this.lines[slot];
    this.keys[slot] = key;
    this.lines[slot] = line;
    if (++this.count > this.keys.length * MAX_LOAD) this.grow();
    return undefined;
  }

  private slotOf(key: number): number {
    const mask = this.keys.length - 1;
    let slot = hashOf(key) & mask;
    while (this.keys[slot] !== 0 && this.keys[slot] !== key) slot = (slot + 1) & mask;
    return slot;
  }

  private grow(): void {
    const { keys, lines } = this;
    this.keys = new Float64Array(keys.length * 2);
    this.lines = new Uint32Array(keys.length * 2);
    for (const [index, key] of keys.entries()) {
      if (key === 0) continue;
      const slot = this.slotOf(key);
      this.keys[slot] = key;
      this.lines[slot] = lines[index] ?? 0;
    }
  }
}

// Spreads the sequential barcodes of a company. Constants of MurmurHash3's finalizer.
function hashOf(key: number): number {
  let hash = Math.imul((key % 2 ** 32) ^ Math.floor(key / 2 ** 32), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
