/** Replaces control characters, which clients choose and a terminal would interpret. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, '?');
}

/** Returns JSON with all control characters escaped. JSON.stringify only escapes the first 32. */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(
    /[\x7f-\x9f]/g,
    (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`,
  );
}
