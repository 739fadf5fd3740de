/** Where the embedded database keeps its data, unless DATA_DIR says otherwise. */
export const DEFAULT_DATA_DIR = 'data';
