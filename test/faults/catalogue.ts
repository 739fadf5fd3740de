import type { Fault } from './fault.ts';
import { pooler } from './pooler.fault.ts';
import { replicas } from './replicas.fault.ts';
import { instances } from './instances.fault.ts';
import { failover } from './failover.fault.ts';
import { attacksBeside } from './attacks-beside.fault.ts';
import { clientsThatLeave } from './clients-that-leave.fault.ts';
import { cluster } from './cluster.fault.ts';
import { diskFull } from './disk-full.fault.ts';
import { drain } from './drain.fault.ts';
import { drainStream } from './drain-stream.fault.ts';
import { killChild } from './kill-child.fault.ts';
import { killServer } from './kill-server.fault.ts';
import { overload } from './overload.fault.ts';
import { payloadMemory } from './payload-memory.fault.ts';
import { poolExhausted } from './pool-exhausted.fault.ts';
import { postgresDownAtStart } from './postgres-down-at-start.fault.ts';
import { postgresFrozen } from './postgres-frozen.fault.ts';
import { postgresRestart } from './postgres-restart.fault.ts';
import { smallHeap } from './small-heap.fault.ts';
import { day, soak } from './soak.fault.ts';
import { start } from './start.fault.ts';
import { twoProcesses } from './two-processes.fault.ts';
import { uncaught } from './uncaught.fault.ts';
import { unusableDirectory } from './unusable-directory.fault.ts';
import { wholeListMemory } from './whole-list-memory.fault.ts';

/** All faults, in the order of docs/generated/faults.md. */
export const faults: readonly Fault[] = [
  killServer,
  killChild,
  diskFull,
  twoProcesses,
  unusableDirectory,
  uncaught,
  start,
  postgresDownAtStart,
  postgresRestart,
  failover,
  cluster,
  postgresFrozen,
  poolExhausted,
  clientsThatLeave,
  drain,
  drainStream,
  overload,
  attacksBeside,
  day,
  soak,
  wholeListMemory,
  payloadMemory,
  smallHeap,
  instances,
  replicas,
  pooler,
];
