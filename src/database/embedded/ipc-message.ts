/** What the embedded database's process says once it has tried to open the database. */
export type Word = { ready: true } | { ready: false; reason: string };
