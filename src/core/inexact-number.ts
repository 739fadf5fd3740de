/** A JSON number that a double would change. Schemas reject it, so it is never rounded. */
export class InexactNumber {
  constructor(readonly source: string) {}
}
