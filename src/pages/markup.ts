/** Text that is HTML already. */
export class Html {
  constructor(readonly text: string) {}
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** HTML with values in it: what is not HTML itself is escaped, good for text and for attributes in quotes. */
export function markup(parts: TemplateStringsArray, ...values: (string | Html | readonly Html[])[]): Html {
  return new Html(parts.reduce((before, part, index) => before + textOf(values[index - 1] ?? '') + part));
}

/** The value as JSON that can stand in a script element. */
export function scriptJson(value: unknown): Html {
  return new Html(JSON.stringify(value).replaceAll('<', String.raw`\u003c`));
}

function textOf(value: string | Html | readonly Html[]): string {
  if (typeof value === 'string') return value.replace(/[&<>"']/g, (letter) => ENTITIES[letter] ?? '');
  return value instanceof Html ? value.text : value.map(({ text }) => text).join('');
}
