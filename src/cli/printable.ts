/** The text without control characters: clients choose what they are called, and a terminal takes some letters for orders. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, '?');
}
