/** What the measured servers sign with. They live for minutes, on loopback addresses, on data that is made up. */
export const SECRET = 'for-the-benchmark-only-0123456789abcdef';
