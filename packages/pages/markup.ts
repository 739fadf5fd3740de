import escapeHtml from 'escape-html';

/** Text that is HTML. */
export class Html {
  constructor(readonly text: string) {}
}

/** Template tag for HTML. Escapes strings for text and for quoted attributes. */
export function markup(
  parts: TemplateStringsArray,
  ...values: (string | Html | readonly Html[])[]
): Html {
  return new Html(
    parts.reduce((before, part, index) => before + textOf(values[index - 1] ?? '') + part),
  );
}

/** Returns the value as JSON for a script element. */
export function scriptJson(value: unknown): Html {
  return new Html(JSON.stringify(value).replaceAll('<', String.raw`\u003c`));
}

function textOf(value: string | Html | readonly Html[]): string {
  if (typeof value === 'string') return escapeHtml(value);
  return value instanceof Html ? value.text : value.map(({ text }) => text).join('');
}
