/**
 * Exit codes: success, failure, invalid usage, invalid configuration (EX_USAGE and EX_CONFIG of
 * sysexits(3)).
 */
export const EXIT = { done: 0, failed: 1, usage: 64, config: 78 } as const;
