/** A number of a JSON document that a double would change. It is no number to any schema, so it is refused rather than rounded. */
export class InexactNumber {
  constructor(readonly source: string) {}
}
