// Sets the time of the build, because tsc leaves an unchanged build as it is. A start warns if a
// source is newer (src/core/outdated-build.ts).
import { utimesSync } from 'node:fs';

const now = new Date();
utimesSync('dist/.tsbuildinfo', now, now);
