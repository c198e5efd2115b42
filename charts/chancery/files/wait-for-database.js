const { connect } = require('node:net');

const again = () => setTimeout(attempt, 250);

function attempt() {
  const socket = connect({ host: 'postgres', port: 5432, timeout: 2_000 });
  socket.once('connect', () => process.exit(0));
  socket.once('timeout', () => socket.destroy(new Error('no answer')));
  socket.once('error', again);
}

attempt();
