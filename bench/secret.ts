/**
 * Signing secret of the measured servers, which serve test data on loopback addresses for minutes.
 */
export const SECRET = 'for-the-benchmark-only-0123456789abcdef';
