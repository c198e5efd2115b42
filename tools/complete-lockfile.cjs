// Adds to package-lock.json the platform packages that the registry in use did not have when the lockfile was made.
// npm omits such optional packages and `npm ci` then refuses the lockfile on every platform. An entry of this program
// has a version, an operating system and a processor but no integrity, so that it is skipped on other platforms and
// fetched by its version on its own. Run it after `npm install`.
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const file = path.join(__dirname, '..', 'package-lock.json');
const lock = JSON.parse(fs.readFileSync(file, 'utf8'));
const systems = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'];
const processors = { x64: 'x64', arm64: 'arm64', armv7: 'arm', arm: 'arm', ia32: 'ia32' };

function entryOf(name, version, parent) {
  const words = name.split(/[/-]/);
  const os = systems.find((system) => words.includes(system));
  const cpu = Object.keys(processors).find((processor) => words.includes(processor));
  if (os === undefined || cpu === undefined) {
    throw new Error(`${name} is missing and its name tells no platform`);
  }
  return {
    version,
    cpu: [processors[cpu]],
    ...(parent.dev ? { dev: true } : {}),
    ...(words.includes('musl') ? { libc: ['musl'] } : {}),
    optional: true,
    os: [os],
  };
}

const added = [];
for (const parent of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const place = `node_modules/${name}`;
    if (lock.packages[place] === undefined) {
      lock.packages[place] = entryOf(name, version, parent);
      added.push(`${name}@${version}`);
    }
  }
}
const sorted = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
fs.writeFileSync(file, `${JSON.stringify({ ...lock, packages: sorted }, null, 2)}\n`);
process.stdout.write(added.length === 0 ? 'the lockfile is complete\n' : `added ${added.join(', ')}\n`);
