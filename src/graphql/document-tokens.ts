import { Lexer, Source, TokenKind } from 'graphql';

/**
 * Returns the document's tokens separated by single spaces, so that documents that differ only in
 * whitespace, commas or comments are equal; undefined if there are more than `max` tokens. Throws a
 * syntax error for invalid tokens.
 */
export function normalizeDocument(text: string, max = Infinity): string | undefined {
  const lexer = new Lexer(new Source(text));
  const tokens: string[] = [];
  for (let token = lexer.advance(); token.kind !== TokenKind.EOF; token = lexer.advance()) {
    if (tokens.push(text.slice(token.start, token.end)) > max) return undefined;
  }
  return tokens.join(' ');
}
