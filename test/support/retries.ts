import { jest } from '@jest/globals';

// On a machine that others use too, some waits pass their bound. TEST_RETRIES tries a failed test again; the closing lines name it.
jest.retryTimes(Number(process.env['TEST_RETRIES'] ?? 0), { logErrorsBeforeRetry: true });
