/** Default data directory of the embedded database (DATA_DIR). */
export const DEFAULT_DATA_DIR = 'data';
