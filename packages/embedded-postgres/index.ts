export { writeBackup } from './backup.ts';
export { access, databaseIn, DataDirUnusable, openDataDir } from './directory.ts';
export { startEmbedded } from './postgresql.ts';
export { restoreBackup } from './restore.ts';
