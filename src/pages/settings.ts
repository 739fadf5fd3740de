/** Settings that the server passes to the scripts of a page. */
export interface PageSettings {
  /** BASE_PATH. */
  base: string;
  /** Users offered for sign-in with their passwords. Empty unless on the embedded default. */
  demoUsers: readonly { username: string; password: string }[];
}
