// Adds up the suites' reports and prints the closing line. Exits 1 when anything failed or nothing ran.
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const folder = process.argv[2];
let passed = 0;
let failed = 0;
for (const name of fs.readdirSync(folder).filter((file) => file.endsWith('.json'))) {
  const report = JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8'));
  const counts =
    report.numTotalTests === undefined
      ? { passed: report.passed, failed: report.failed }
      : {
          passed: report.numPassedTests,
          failed: report.numFailedTests + (report.success || report.numFailedTests > 0 ? 0 : 1),
        };
  process.stdout.write(`${name.replace(/\.json$/, '')}: ${counts.passed} passed, ${counts.failed} failed\n`);
  passed += counts.passed;
  failed += counts.failed;
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
