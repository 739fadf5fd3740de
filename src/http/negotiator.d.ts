/** What we use of `negotiator`: it brings no types, and those published apart lack `preferred`. */
declare module 'negotiator' {
  import type { IncomingHttpHeaders } from 'node:http';

  export default class Negotiator {
    constructor(request: { headers: IncomingHttpHeaders });
    /** Returns the codings that the client accepts, best first; `preferred` decides between those that it likes alike. */
    encodings<Coding extends string>(available: readonly Coding[], options: { preferred: readonly string[] }): Coding[];
  }
}
