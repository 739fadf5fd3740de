/** A service like those that the REST API replaces. It listens on 127.0.0.1, on PORT. */
export interface Reference {
  name: string;
  /** Its Debian packages, its own first. */
  packages: readonly string[];
  /** Its start command, in this folder. */
  command: readonly string[];
  /** Its environment besides PORT. */
  environment(databaseUrl: string): Record<string, string>;
  /** A public path that returns 200 once it is ready. */
  readyAt: string;
}

// Debian's packages need Debian's interpreter, which may not be the first on PATH.
const PYTHON = '/usr/bin/python3';

export const references: readonly Reference[] = [
  {
    name: 'FastAPI',
    packages: [
      'python3-fastapi',
      'python3-uvicorn',
      'python3-uvloop',
      'python3-httptools',
      'python3-multipart',
      'python3-jose',
      'python3-bcrypt',
      'python3-asyncpg',
    ],
    command: [PYTHON, 'fastapi_app.py'],
    environment,
    readyAt: '/openapi.json',
  },
  {
    name: 'Django REST framework',
    packages: ['python3-djangorestframework', 'python3-django', 'python3-psycopg2', 'gunicorn'],
    command: [PYTHON, 'drf_app.py'],
    environment,
    readyAt: '/api/v2/shop/products?page=1',
  },
];

function environment(databaseUrl: string): Record<string, string> {
  return { DATABASE_URL: databaseUrl };
}
