@rem The scripts of package.json begin with the exec of a POSIX shell, so that signals to npm reach the server. In cmd.exe, this is its exec.
@%*
