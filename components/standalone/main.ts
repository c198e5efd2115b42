import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

if (process.features.typescript === false) {
  process.stderr.write(
    'Chancery runs on Node 26: use `npm start`, which finds the one that was installed.\n',
  );
  process.exitCode = 1;
} else {
  // Stripped and compiled modules are cached, which halves the time of the next start. The cache may be deleted at any
  // time.
  enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/chancery', import.meta.url)));
  const { command } = await import('./command.ts');
  process.exitCode = await command();
  // Sockets whose peers have ended must not keep the process alive.
  setTimeout(() => process.exit(), 500).unref();
}
