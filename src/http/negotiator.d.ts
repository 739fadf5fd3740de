/** Types for `negotiator`, which has none. The published types lack `preferred`. */
declare module 'negotiator' {
  import type { IncomingHttpHeaders } from 'node:http';

  export default class Negotiator {
    constructor(request: { headers: IncomingHttpHeaders });
    /** Returns the accepted codings, best first. `preferred` decides between equal ones. */
    encodings<Coding extends string>(
      available: readonly Coding[],
      options: { preferred: readonly string[] },
    ): Coding[];
  }
}
