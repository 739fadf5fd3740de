/** A service such as those that the REST interface stems from. It listens on 127.0.0.1, at PORT. */
export interface Reference {
  name: string;
  /** The Debian packages that it needs. */
  packages: readonly string[];
  /** How it is started in this folder. */
  command: readonly string[];
  /** What its environment has to hold beside PORT. */
  environment(databaseUrl: string): Record<string, string>;
  /** A path that it answers with 200 to anyone once it is there. */
  readyAt: string;
}

// Debian's packages are for Debian's interpreter, and another one may be the first on PATH.
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
    packages: ['python3-django', 'python3-djangorestframework', 'python3-psycopg2', 'gunicorn'],
    command: [PYTHON, 'drf_app.py'],
    environment,
    readyAt: '/api/v2/shop/products?page=1',
  },
];

function environment(databaseUrl: string): Record<string, string> {
  return { DATABASE_URL: databaseUrl };
}
