"""Two databases for tests of rows: ClickHouse (Debian: clickhouse-server) and DuckDB (npm). Each
runs the files of share/sql unchanged."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import npm

SQL = os.path.join(os.environ["SOURCE"], "share/sql")
LIMIT_S = 120
QUERIES = ("groups", "odd", "tree", "blockers", "difference")
CONFIG = """<yandex>
  <logger><level>error</level><log>{0}/log</log><errorlog>{0}/errors</errorlog></logger>
  {1}
  <listen_host>127.0.0.1</listen_host>
  <max_concurrent_queries>200</max_concurrent_queries>
  <max_connections>1000</max_connections>
  <mark_cache_size>67108864</mark_cache_size>
  <path>{0}/data/</path><tmp_path>{0}/tmp/</tmp_path>
  <users_config>{0}/users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database>
</yandex>
"""
USERS = """<yandex>
  <profiles><default><max_memory_usage>2000000000</max_memory_usage>
    <load_balancing>random</load_balancing></default></profiles>
  <users><default><password>{}</password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></default>{}</users>
  <quotas><default/></quotas>
</yandex>
"""
DUCK = """
const { DuckDBInstance } = require('@duckdb/node-api');
const fs = require('fs');
(async () => {
  const [files, schema, ...queries] = process.argv.slice(2);
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  await connection.run(`SET VARIABLE rows = '${files}'`);
  await connection.run(fs.readFileSync(schema, 'utf8'));
  const results = [];
  for (const query of queries) {
    const text = query.endsWith('.sql') ? fs.readFileSync(query, 'utf8') : query;
    results.push((await connection.runAndReadAll(text)).getRowsJson());
  }
  console.log(JSON.stringify(results));
})().catch(error => { console.error(String(error)); process.exit(1); });
"""


def query_path(name):
    return os.path.join(SQL, name + ".sql")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def statements(path):
    return [part.strip() for part in re.sub(r"(?m)^--.*\n", "", read(path)).split(";")
            if part.strip()]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def plain(rows):
    """Values as text: the databases differ in the types that they return."""
    return [[json.dumps(value) if isinstance(value, list) else str(value) for value in row]
            for row in rows]


WRITER = """<writer><password>{}</password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></writer>"""
HTTPS = """<https_port>{0}</https_port><openSSL><server>
    <certificateFile>{1}</certificateFile><privateKeyFile>{2}</privateKeyFile>
    <verificationMode>none</verificationMode></server></openSSL>"""


class ClickHouse:
    """A server with the schema, in a directory of its own. test skips without one. https: port,
    certificate, its key, and the password of the user "writer"."""

    def __init__(self, test, https=None):
        program = shutil.which("clickhouse-server", path=os.environ["PATH"] + ":/usr/sbin")
        if not program:
            raise unittest.SkipTest("clickhouse-server is missing")
        directory = test.enterContext(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        self.port = free_port()
        ports = "<http_port>%d</http_port>" % self.port
        if https:
            ports += HTTPS.format(*https)
        for name, text in (("config.xml", CONFIG.format(directory, ports)),
                           ("users.xml", USERS.format("", WRITER.format(https[3]) if https else ""))):
            with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                file.write(text)
        with open(os.path.join(directory, "output"), "wb") as output:
            server = subprocess.Popen(
                [program, "--config-file=%s/config.xml" % directory],
                stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=directory)
        test.addCleanup(server.wait)
        test.addCleanup(server.kill)
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                self.ask("SELECT 1")
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError("no server: %s" % read(directory + "/output")) from None
                time.sleep(0.1)  # nothing signals it
        for statement in statements(os.path.join(SQL, "clickhouse.sql")):
            self.ask(statement)

    def ask(self, query, data=None):
        words = {"query": query} if data is not None else {}
        url = "http://127.0.0.1:%d/?%s" % (self.port, urllib.parse.urlencode(words))
        try:
            with urllib.request.urlopen(url, data if data is not None else query.encode(),
                                        timeout=LIMIT_S) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError("%s\n%s" % (query, error.read().decode())) from None

    def insert(self, rows):
        return self.ask("INSERT INTO rows FORMAT JSONEachRow", rows)

    def rows(self, query):
        text = self.ask(query + "\nFORMAT JSONCompact")
        return plain(json.loads(text)["data"])


def duckdb(test, files, queries):
    """The results of the queries over these files."""
    node = shutil.which("node")
    if not node:
        raise unittest.SkipTest("node is missing")
    directory = test.enterContext(tempfile.TemporaryDirectory())
    modules = os.path.join(directory, "node_modules")
    os.makedirs(os.path.join(modules, "@duckdb"))
    for name in npm.DUCKDB:
        os.symlink(npm.package(name), os.path.join(modules, name))
    script = os.path.join(directory, "ask.js")
    with open(script, "w", encoding="utf-8") as file:
        file.write(DUCK)
    done = subprocess.run([node, "--preserve-symlinks", "--preserve-symlinks-main", script, files,
                           os.path.join(SQL, "duckdb.sql"), *queries],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S,
                          check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode()[-4000:])
    return [plain(rows) for rows in json.loads(done.stdout)]
