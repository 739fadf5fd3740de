// Loaded before the server (node --import): has it throw what nobody catches, once it is told to.

const signals = {
  SIGUSR2: () => {
    throw new Error('thrown by nobody in particular');
  },
  SIGWINCH: () => void Promise.reject(new Error('refused by nobody in particular')),
} as const;

for (const [signal, fault] of Object.entries(signals)) process.once(signal, () => setImmediate(fault));
