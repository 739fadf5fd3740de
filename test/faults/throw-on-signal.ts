// Loaded before the server (node --import): throws an uncaught error on a signal.

const signals = {
  SIGUSR2: () => {
    throw new Error('uncaught exception of the test');
  },
  SIGWINCH: () => void Promise.reject(new Error('unhandled rejection of the test')),
} as const;

for (const [signal, fault] of Object.entries(signals))
  process.once(signal, () => setImmediate(fault));
