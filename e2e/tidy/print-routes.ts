import { document1 } from './routes/document-1.ts';
import { document2 } from './routes/document-2.ts';
import { document3 } from './routes/document-3.ts';
import type { SpecifiedRoute } from './routes/table.ts';

/** Prints how many routes of each specification document are served. */
function print(name: string, routes: readonly SpecifiedRoute[]): void {
  const served = routes.filter((route) => route.status === 'served').length;
  process.stdout.write(`${name}: ${served}/${routes.length}\n`);
}

print('document 1', document1);
print('document 2', document2);
print('document 3', document3);
