/** What a page is told by the server, for its scripts. */
export interface PageSettings {
  /** BASE_PATH. */
  base: string;
  /** Who can sign in without being asked for a password; nobody but on the embedded default. */
  demoUsers: readonly { username: string; password: string }[];
}
