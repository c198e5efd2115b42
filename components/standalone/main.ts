import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

if (process.features.typescript === false) {
  process.stderr.write(
    'Chancery runs on Node 26: use `npm start`, which finds the one that was installed.\n',
  );
  process.exitCode = 1;
} else {
  // stripped and compiled modules are kept, which halves the next start; the cache may go at any time
  enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/chancery', import.meta.url)));
  const { command } = await import('./command.ts');
  process.exitCode = await command();
  // sockets that ended with their peers must not hold the process
  setTimeout(() => process.exit(), 500).unref();
}
