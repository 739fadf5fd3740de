/** Message of the database process after it has tried to open the database. */
export type IpcMessage = { ready: true } | { ready: false; reason: string };
