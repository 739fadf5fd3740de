/** Returns the complete response with this status to a request that Node cannot parse. */
export function unreadable(status: string): string {
  const headers = [
    'Connection: close',
    'Access-Control-Allow-Origin: *',
    'Cache-Control: no-store',
    'Content-Length: 0',
  ];
  return `HTTP/1.1 ${status}\r\n${headers.join('\r\n')}\r\n\r\n`;
}
