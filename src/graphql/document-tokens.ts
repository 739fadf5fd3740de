import { Lexer, Source, TokenKind } from 'graphql';

/**
 * A document as its words alone, without the spaces, line breaks, commas and comments between them: two spellings of one document
 * are the same. Undefined where there are more words than `max`; throws a syntax error where they are none of GraphQL's.
 */
export function wordsOf(text: string, max = Infinity): string | undefined {
  const lexer = new Lexer(new Source(text));
  const words: string[] = [];
  for (let token = lexer.advance(); token.kind !== TokenKind.EOF; token = lexer.advance()) {
    if (words.push(text.slice(token.start, token.end)) > max) return undefined;
  }
  return words.join(' ');
}
