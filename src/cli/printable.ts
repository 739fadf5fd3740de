/** The text without control characters: clients choose what they are called, and a terminal takes some letters for orders. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, '?');
}

/** The value as JSON, in which all control characters are escaped: JSON.stringify leaves those past ASCII's first 32 as they are. */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(/[\x7f-\x9f]/g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);
}
